"""What agents and orchestrators import: a transport through the gate, attribution, structured deferrals."""
