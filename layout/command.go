package layout

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/payload"
)

// agentProgram matches the file names of node agents: one file per version, named by its digest.
var agentProgram = regexp.MustCompile(`^wmco-node(-[0-9a-f]+)?\.exe$`)

// checkCommand returns an error unless the service runs its own program, directly or through kube-log-runner.
func checkCommand(s bundle.Service) error {
	i := slices.IndexFunc(services(), func(x service) bool { return x.name == s.Name })
	if i < 0 {
		return fmt.Errorf("a node has no service of this name, only %s", strings.Join(ServiceNames(), ", "))
	}
	argv, err := unwrap(s.Argv)
	if err != nil {
		return err
	}
	program := services()[i].program
	switch {
	case !runs(argv[0], program):
		return fmt.Errorf("argv: it runs %s, and not %s", argv[0], payload.Find(program).Path)
	case s.Name == Agent && (len(argv) < 2 || argv[1] != "run"):
		return fmt.Errorf("argv: the node agent has the command run as a service")
	case s.Name == Gateway && (len(argv) < 2 || argv[1] != "registry"):
		return fmt.Errorf("argv: %s has the command registry", Gateway)
	}
	return nil
}

// runs reports whether a path is that of an executable of the payload.
func runs(path, program string) bool {
	want := payload.Find(program).Path
	if program != payload.Agent {
		return bundle.FoldPath(path) == bundle.FoldPath(want)
	}
	inFolder := bundle.FoldPath(bundle.Dir(path)) == bundle.FoldPath(bundle.Dir(want))
	return inFolder && agentProgram.MatchString(bundle.FoldPath(bundle.Base(path)))
}

// unwrap returns the command that a service runs in the end: what kube-log-runner starts, or the command itself.
//
// kube-log-runner reads its flags with Go's package flag, up to the first argument that is none, and starts the rest
// (k8s.io/component-base/logs/kube-log-runner). That package also reads `--name=value`, `-name value` and `--`, and
// takes the last of two equal flags: all that is refused, so that there is one reading.
func unwrap(argv []string) ([]string, error) {
	if len(argv) == 0 {
		return nil, fmt.Errorf("argv: a service without a command")
	}
	if !runs(argv[0], payload.KubeLogRunner) {
		return argv, nil
	}
	seen := map[string]bool{}
	for i, arg := range argv[1:] {
		if !strings.HasPrefix(arg, "-") {
			return argv[1+i:], nil
		}
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case !ok || !slices.Contains([]string{FlagLogFile, FlagLogFileSize, FlagLogFileAge, FlagFlushInterval}, name):
			return nil, fmt.Errorf("argv: kube-log-runner gets %q: its flags are written as %s=PATH", arg, FlagLogFile)
		case seen[name]:
			return nil, fmt.Errorf("argv: kube-log-runner gets %s twice", name)
		case name == FlagLogFile && !isLog(value):
			return nil, fmt.Errorf("argv: kube-log-runner writes to %s, which is not below %s", value, DirLogs)
		}
		seen[name] = true
	}
	return nil, fmt.Errorf("argv: kube-log-runner starts nothing")
}

// isLog reports whether a path may be that of a log.
func isLog(path string) bool {
	return bundle.CheckPath(path) == nil && strings.HasPrefix(bundle.FoldPath(path), bundle.FoldPath(DirLogs)+`\`)
}
