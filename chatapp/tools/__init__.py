"""Tools: typed functions that the model may call, how calls are run, and the demo shop."""
