package imports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// pkg is one package in the output of go list.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	// DepOnly is true for a package that is only a dependency of another one.
	DepOnly bool
}

// graph holds the packages of a module and everything that they link, by import path. Tests are not part of it.
type graph struct {
	module   string
	packages map[string]pkg
}

// loadGraph returns all packages of the module in dir as they are built for goos.
func loadGraph(ctx context.Context, dir, goos string) (graph, error) {
	module, err := runGoList(ctx, dir, goos, "-m")
	if err != nil {
		return graph{}, err
	}
	listed, err := runGoList(ctx, dir, goos, "-deps", "-json=ImportPath,Standard,Imports,DepOnly", "./...")
	if err != nil {
		return graph{}, err
	}
	g := graph{module: strings.TrimSpace(string(module)), packages: map[string]pkg{}}
	decoder := json.NewDecoder(bytes.NewReader(listed))
	for {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err != nil {
			return graph{}, fmt.Errorf("reading the output of go list: %w", err)
		}
		g.packages[p.ImportPath] = p
	}
}

func runGoList(ctx context.Context, dir, goos string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go list %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// importChains returns the shortest chain of imports from start to every package that it links, start included.
func (g graph) importChains(start string) map[string][]string {
	found := map[string][]string{start: {start}}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range g.packages[at].Imports {
			if _, seen := found[next]; !seen {
				found[next] = append(append([]string{}, found[at]...), next)
				queue = append(queue, next)
			}
		}
	}
	return found
}
