package mustgather

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/controller/gather/ignition"
	"wmco/render"
)

// lastApplied repeats the whole object, secrets included (kubectl apply).
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Of the files of an Ignition configuration, nodes get the credential provider's configuration of their cloud, and the identity in cloud.conf.
const (
	credentialProviders = "/etc/kubernetes/credential-providers/"
	cloudConf           = "/etc/kubernetes/cloud.conf"
)

// isReadFile reports whether nodes get something of a file, which is redacted: both can hold a password. One that cannot be read is left out.
func isReadFile(file map[string]any) bool {
	path, _ := file["path"].(string)
	contents, _ := file["contents"].(map[string]any)
	source, _ := contents["source"].(string)
	compression, _ := contents["compression"].(string)
	text, err := ignition.Resource{Source: source, Compression: compression}.DecodeContents()
	if err != nil {
		return false
	}
	kept, err := redactIdentity(text)
	if path != cloudConf {
		name, ok := strings.CutPrefix(path, credentialProviders)
		if !ok || !slices.ContainsFunc(bundle.Platforms(), func(p bundle.Platform) bool { return render.ProviderFile(p) == name }) {
			return false
		}
		kept, err = redactProviders(text)
	}
	if err == nil && !bytes.Equal(kept, text) {
		file["contents"] = map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString(kept)}
	}
	return err == nil
}

var errNoIdentity = errors.New("it has no managed identity")

// redactIdentity keeps of cloud.conf the identity.
func redactIdentity(text []byte) ([]byte, error) {
	identity, err := render.ParseAzureIdentity(text)
	if err == nil && !identity.Managed {
		err = errNoIdentity
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(identity)
}

// redactProviders masks what variables and arguments of credential providers call a secret. A file without one stays as it is.
func redactProviders(text []byte) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	before, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	filterList(config, func(provider map[string]any) bool {
		maskArguments(provider["args"])
		filterList(provider, func(entry map[string]any) bool {
			name, _ := entry["name"].(string)
			value, _ := entry["value"].(string)
			if assigned := name + "=" + value; bundle.MaskLog(assigned) != assigned {
				entry["value"] = bundle.MaskedText
			}
			return true
		}, "env")
		return true
	}, "providers")
	after, err := yaml.Marshal(maskAll(config))
	if err != nil || bytes.Equal(after, before) {
		return text, err
	}
	return after, nil
}

// shownVariables are environment variables whose values are kept. The others may hold anything.
var shownVariables = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ARGS", "SERVICES_LOG_FILE_SIZE", "SERVICES_LOG_FILE_AGE",
	"SERVICES_LOG_FLUSH_INTERVAL", "WATCH_NAMESPACE", "OPERATOR_NAME",
}

var (
	// bareUserInfo is the same in an address without a scheme.
	bareUserInfo = regexp.MustCompile(`^[^\s/]+:.*@`)
	// keptLine is a line of a systemd unit that is read.
	keptLine = regexp.MustCompile(`^\s*(\[Service\]|ExecStart\s*=)`)
)

// redactObject removes from an object what may be a secret. Of kinds that hold secrets among much else, it keeps what
// is read.
func redactObject(u *unstructured.Unstructured) {
	o := u.Object
	unstructured.RemoveNestedField(o, "metadata", "managedFields")
	unstructured.RemoveNestedField(o, "metadata", "annotations", lastApplied)
	switch u.GetKind() {
	case "Secret":
		redactSecret(o)
	case "ControllerConfig":
		keepFields(o, []string{
			"kubeAPIServerServingCAData", "imageRegistryBundleData", "imageRegistryBundleUserData", "infra",
		}, "spec")
		unstructured.RemoveNestedField(o, "status")
	case "MachineConfig":
		redactMachineConfig(o)
	case "Machine", "MachineSet":
		for _, path := range [][]string{
			{"spec", "providerSpec"}, {"spec", "template", "spec", "providerSpec"}, {"status", "providerStatus"},
		} {
			unstructured.RemoveNestedField(o, path...)
		}
	case "Deployment", "ReplicaSet":
		redactPod(o, "spec", "template", "spec")
	case "Pod":
		redactPod(o, "spec")
	case "Event":
		for _, field := range []string{"message", "note"} {
			if text, ok := o[field].(string); ok {
				o[field] = bundle.MaskLog(text)
			}
		}
	case "Proxy":
		for _, part := range []string{"spec", "status"} {
			for _, field := range []string{"httpProxy", "httpsProxy"} {
				if text, ok, _ := unstructured.NestedString(o, part, field); ok {
					_ = unstructured.SetNestedField(o, maskProxy(text), part, field)
				}
			}
		}
	}
	u.Object = maskAll(o).(map[string]any)
}

// maskProxy masks the address of a proxy, with or without a scheme.
func maskProxy(text string) string {
	if !strings.Contains(text, "://") {
		return bareUserInfo.ReplaceAllString(text, bundle.MaskedUser+"@")
	}
	return bundle.MaskText(text)
}

// maskAll masks every text.
func maskAll(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = maskAll(v[k])
		}
	case []any:
		for i := range v {
			v[i] = maskAll(v[i])
		}
	case string:
		return bundle.MaskText(v)
	}
	return value
}

// redactSecret keeps the names of the values.
func redactSecret(o map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, ok, _ := unstructured.NestedMap(o, field)
		if !ok {
			continue
		}
		for k := range values {
			values[k] = ""
		}
		o[field] = values
	}
	unstructured.RemoveNestedField(o, "metadata", "annotations")
}

// keepFields removes all other fields of a part.
func keepFields(o map[string]any, fields []string, path ...string) {
	part, ok, _ := unstructured.NestedMap(o, path...)
	if !ok {
		return
	}
	for k := range part {
		if !slices.Contains(fields, k) {
			delete(part, k)
		}
	}
	_ = unstructured.SetNestedMap(o, part, path...)
}

// redactMachineConfig keeps the one file that nodes get, and the command of the kubelet. Other files and units hold
// pull secrets, certificates and proxies.
func redactMachineConfig(o map[string]any) {
	keepFields(o, []string{"config"}, "spec")
	keepFields(o, []string{"ignition", "storage", "systemd"}, "spec", "config")
	keepFields(o, []string{"version"}, "spec", "config", "ignition")
	keepFields(o, []string{"files"}, "spec", "config", "storage")
	keepFields(o, []string{"units"}, "spec", "config", "systemd")
	filterList(o, isReadFile, "spec", "config", "storage", "files")
	filterList(o, func(unit map[string]any) bool {
		if unit["name"] != "kubelet.service" {
			return false
		}
		redactUnit(unit)
		dropins, _ := unit["dropins"].([]any)
		for _, d := range dropins {
			if dropin, ok := d.(map[string]any); ok {
				redactUnit(dropin)
			}
		}
		return true
	}, "spec", "config", "systemd", "units")
}

// filterList keeps some elements of a list.
func filterList(o map[string]any, kept func(map[string]any) bool, path ...string) {
	list, ok, _ := unstructured.NestedSlice(o, path...)
	if !ok {
		return
	}
	list = slices.DeleteFunc(list, func(x any) bool {
		m, ok := x.(map[string]any)
		return !ok || !kept(m)
	})
	_ = unstructured.SetNestedSlice(o, list, path...)
}

// redactUnit keeps the commands of a unit: its environment may hold a proxy. A line that ends in a backslash goes on in
// the next one.
func redactUnit(unit map[string]any) {
	text, ok := unit["contents"].(string)
	if !ok {
		return
	}
	var kept []string
	isKept := false
	continued := false
	for line := range strings.SplitSeq(text, "\n") {
		if !continued {
			isKept = keptLine.MatchString(line)
		}
		if isKept {
			kept = append(kept, bundle.MaskText(line))
		}
		continued = strings.HasSuffix(line, `\`)
	}
	unit["contents"] = strings.Join(kept, "\n") + "\n"
}

// maskArguments masks values that are named like secrets in the arguments of a program: --password=x, and the word after --password.
func maskArguments(list any) {
	all, _ := list.([]any)
	before := ""
	for i, arg := range all {
		text, ok := arg.(string)
		if !ok {
			continue
		}
		all[i] = bundle.MaskLog(text)
		if strings.HasSuffix(bundle.MaskLog(" "+before+" "+text), " "+bundle.MaskedText) { // it is the value of a flag
			all[i] = bundle.MaskedText
		}
		before = text
	}
}

// redactPod removes the values of variables that are not known to be harmless, and masks arguments.
func redactPod(o map[string]any, path ...string) {
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		filterList(o, func(container map[string]any) bool {
			for _, words := range []string{"command", "args"} {
				maskArguments(container[words])
			}
			env, _ := container["env"].([]any)
			for _, e := range env {
				variable, ok := e.(map[string]any)
				name, _ := variable["name"].(string)
				text, isText := variable["value"].(string)
				switch {
				case !ok || !isText:
				case strings.HasSuffix(name, "_PROXY"):
					variable["value"] = maskProxy(text)
				case !slices.Contains(shownVariables, name):
					variable["value"] = bundle.MaskedText
				}
			}
			return true
		}, append(slices.Clone(path), list)...)
	}
}
