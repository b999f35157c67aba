"""The one door for the command line, the cockpit and scripts: reads, reasons, plans and acts."""
