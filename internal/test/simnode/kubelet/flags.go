package kubelet

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
)

// flags are the command line.
type flags struct {
	config, kubeconfig, bootstrap, certDir string
	hostName, nodeIP, cloudProvider        string
	labels                                 map[string]string
	taints                                 []string
}

// program is the name of the executable in the command line of its service, which may begin with a wrapper.
const program = "kubelet.exe"

// parseFlags reads the arguments after the program.
func parseFlags(argv []string) (flags, error) {
	at := slices.IndexFunc(argv, func(arg string) bool { return strings.EqualFold(bundle.Base(arg), program) })
	if at < 0 {
		return flags{}, fmt.Errorf("the command does not run %s", program)
	}
	var f flags
	set := pflag.NewFlagSet(program, pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.config, "config", "", "")
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "")
	set.StringVar(&f.bootstrap, "bootstrap-kubeconfig", "", "")
	set.StringVar(&f.certDir, "cert-dir", `C:\var\lib\kubelet\pki`, "")
	set.StringVar(&f.hostName, "hostname-override", "", "")
	set.StringVar(&f.nodeIP, "node-ip", "", "")
	set.StringVar(&f.cloudProvider, "cloud-provider", "", "")
	set.StringToStringVar(&f.labels, "node-labels", nil, "")
	set.StringSliceVar(&f.taints, "register-with-taints", nil, "")
	// Read by parts that are not simulated.
	for _, name := range []string{
		"v", "vmodule", "windows-priorityclass", "image-credential-provider-bin-dir",
		"image-credential-provider-config", "root-dir", "runtime-cgroups", "max-pods", "provider-id",
	} {
		set.String(name, "", "")
	}
	set.Bool("windows-service", false, "")
	if err := set.Parse(argv[at+1:]); err != nil {
		return flags{}, fmt.Errorf("reading the flags: %w", err)
	}
	if set.NArg() > 0 {
		return flags{}, fmt.Errorf("reading the flags: unknown command %q", set.Arg(0))
	}
	return f, nil
}

// parseTaint reads key[=value]:effect.
func parseTaint(text string) (corev1.Taint, error) {
	rest, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if !ok {
		return t, fmt.Errorf("invalid taint %q", text)
	}
	return t, checkTaint(t)
}

func checkTaint(t corev1.Taint) error {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if t.Key == "" || !slices.Contains(effects, t.Effect) || t.TimeAdded != nil {
		return fmt.Errorf("invalid taint %q", t.ToString())
	}
	return nil
}
