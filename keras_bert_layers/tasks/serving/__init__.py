"""Answers, explanations and reports of tasks; signatures and exports."""
