"""What is told about traffic: metrics, alerts, traces, log lines; made from journal records, never on the data path."""
