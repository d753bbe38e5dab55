package main

import (
	"os"

	"felix.dev/felix/cmd/felix/internal/cli"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(cli.Main(version)) }
