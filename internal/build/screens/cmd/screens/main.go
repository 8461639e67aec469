// Command screens writes the pictures of what the commands print. `make generate` runs it in the repository.
//
//	screens WMCO FOLDER
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"wmco/internal/build/screens"
)

// columns are those of the terminal.
const columns = 160

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: screens WMCO FOLDER")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wmco, folder string) error {
	program, err := filepath.Abs(wmco)
	if err != nil {
		return err
	}
	for _, s := range screens.Scenes() {
		command, output, err := s.Print(ctx, program, "golden")
		if err != nil {
			return fmt.Errorf("making %s.svg: %w", s.Name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, s.Name+".svg"), screens.Draw(command, output, columns), 0o644); err != nil {
			return err
		}
	}
	return nil
}
