"""Table results_bert: a pretrained encoder, fine-tuned on GLUE with masked words and IMM."""
