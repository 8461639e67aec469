// Package pages writes the generated pages and schemas of docs. The tests of cmd/wmco call it with the commands and the
// types of their answers: no program links it.
package pages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/spf13/cobra"
)

// Pages returns the generated files of docs, by path. Tree is the folder of the sources; root is the command wmco; answers are the types of what -o json
// prints, by command.
func Pages(tree string, root *cobra.Command, answers map[string]reflect.Type) (map[string]string, error) {
	files, err := schemaPages(answers)
	if err != nil {
		return nil, err
	}
	files["cli.md"], files["node-layout.md"], files["payload.md"], files["reasons.md"] = commandsPage(root), nodeLayout(), payloadPage(), reasonsPage()
	files["architecture.md"], err = architecture(tree)
	return files, err
}

// Write writes files below a folder.
func Write(folder string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return fmt.Errorf("writing pages: %w", err)
		}
	}
	return nil
}
