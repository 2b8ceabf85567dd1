"""What one does with finished tasks: few labels, probes, distillation, other vocabularies, callbacks."""
