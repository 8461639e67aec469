package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
)

const optionsPackage = "k8s.io/kubernetes/cmd/kubelet/app/options"

// windowsFlags returns the names of the flags of the Windows build of the kubelet, sorted. This program runs on
// Linux, so it takes the flags of the Linux build, without those that only the Linux files of the options package
// register, and with those that only its Windows files register, both read from the source.
func windowsFlags(ctx context.Context) ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("runs on linux only: it derives the flags of Windows from those of Linux")
	}
	dir, err := sourceDir(ctx, optionsPackage)
	if err != nil {
		return nil, err
	}
	linuxOnly, err := registeredIn(filepath.Join(dir, "globalflags_linux.go"), registration{
		calls: []string{"register", "registerDeprecated"}, position: 2,
	})
	if err != nil {
		return nil, err
	}
	windowsOnly, err := registeredIn(filepath.Join(dir, "osflags_windows.go"), registration{
		calls: []string{"BoolVar", "StringVar"}, position: 1,
	})
	if err != nil {
		return nil, err
	}

	names := map[string]bool{"help": true}
	if err := addLinuxFlags(names); err != nil {
		return nil, err
	}
	for _, n := range linuxOnly {
		name := strings.ReplaceAll(n, "_", "-")
		if !names[name] {
			return nil, fmt.Errorf("flag %q of globalflags_linux.go is not among the kubelet's flags", name)
		}
		delete(names, name)
	}
	for _, n := range windowsOnly {
		names[n] = true
	}
	return sortedKeys(names), nil
}

// addLinuxFlags adds the flags that the kubelet registers on Linux.
func addLinuxFlags(names map[string]bool) error {
	server, err := options.NewKubeletServer()
	if err != nil {
		return fmt.Errorf("preparing the kubelet's flags: %w", err)
	}
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	server.AddFlags(set)
	options.AddGlobalFlags(set)
	set.VisitAll(func(f *pflag.Flag) { names[f.Name] = true })
	return nil
}

// registration is the calls that register a flag, with the position of its name.
type registration struct {
	calls    []string
	position int
}

// registeredIn returns the flag names that a Go file registers. A file without any, or a name that is not a literal,
// is an error: the file then no longer has the form that this program expects.
func registeredIn(file string, r registration) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("reading flags: %w", err)
	}
	var names []string
	var bad error
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !slices.Contains(r.calls, calledName(call)) {
			return true
		}
		name, err := literal(call, r.position)
		if err != nil {
			bad = fmt.Errorf("reading flags of %s: %w", filepath.Base(file), err)
			return false
		}
		names = append(names, name)
		return true
	})
	if bad == nil && len(names) == 0 {
		bad = fmt.Errorf("reading flags of %s: found none", filepath.Base(file))
	}
	return names, bad
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	default:
		return ""
	}
}

func literal(call *ast.CallExpr, position int) (string, error) {
	if len(call.Args) > position {
		if lit, ok := call.Args[position].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			return strconv.Unquote(lit.Value)
		}
	}
	return "", fmt.Errorf("a call of %s whose argument %d is not a string", calledName(call), position)
}

// sourceDir returns the folder of the source of a package.
func sourceDir(ctx context.Context, pkg string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of %s: %w", pkg, err)
	}
	return strings.TrimSpace(string(out)), nil
}
