"""The paper's logistic regression: three features, of which the restricted model sees one."""
