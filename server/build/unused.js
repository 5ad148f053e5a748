// Stands for a package that the service never loads.
throw new Error("This package is not in the bundle");
