// Goldencases writes each case of golden/cases as whole nodes, for other modules: golden keeps most of them as
// differences.
//
//	go run ./internal/build/goldencases golden/cases OUT    # OUT/none/want/win-a/C/k/kubelet.conf
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"wmco/internal/golden"
	"wmco/render/preview"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: goldencases CASES OUT")
		os.Exit(2)
	}
	if err := writeCases(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "goldencases:", err)
		os.Exit(1)
	}
}

func writeCases(ctx context.Context, cases, out string) error {
	files, err := filepath.Glob(filepath.Join(cases, "*", golden.CaseFile))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no cases in %q", cases)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		if err := writeCase(ctx, dir, filepath.Join(out, filepath.Base(dir))); err != nil {
			return fmt.Errorf("case %q: %w", dir, err)
		}
	}
	return nil
}

func writeCase(ctx context.Context, dir, out string) error {
	c, err := golden.Load(dir)
	if err != nil {
		return err
	}
	hosts, err := c.Read(ctx, dir, nil)
	if err != nil {
		return err
	}
	list, findings, err := c.Render(hosts)
	if err != nil {
		return fmt.Errorf("%w: %+v", err, findings)
	}
	tree, err := golden.Files(list, preview.Options{})
	if err != nil {
		return err
	}
	return golden.Write(ctx, golden.WantDir(out), tree)
}
