"""What the compiler is told of how the extension is used: profile-guided optimisation."""
