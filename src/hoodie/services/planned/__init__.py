"""What the planned services share: plans wait on the timeline until a process claims, executes, or rolls them back."""
