package consumers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
)

// settingsCase is one random setting, as TestRandomSettingsOfTheKubelet of wmco/render writes it. hack/minors compiles
// this file with each minor version too.
type settingsCase struct {
	// Settings are the override, Config is kubelet.conf with it.
	Settings, Config string
	// Refused are the fields of our findings, none where the settings are accepted.
	Refused []string
}

// compareSettings returns how often a kubelet ends, and each case in which our findings differ from what the kubelet
// does.
func compareSettings(cases io.Reader, kubelet func(config []byte) error) (accepted, refused int, differences []error) {
	lines := bufio.NewScanner(cases)
	for lines.Scan() {
		var c settingsCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return accepted, refused, []error{err}
		}
		err := kubelet([]byte(c.Config))
		if err == nil {
			accepted++
		} else {
			refused++
		}
		if why := c.difference(err); why != "" {
			differences = append(differences, fmt.Errorf("kubelet: %s\n  %s\n  fields of our findings: %v\n  the kubelet: %v", c.Settings, why, c.Refused, err)) //nolint:errorlint // may be nil
		}
	}
	return accepted, refused, append(differences, lines.Err())
}

func (c settingsCase) difference(err error) string {
	switch {
	case err == nil && len(c.Refused) > 0:
		return "we refuse what the kubelet accepts"
	case err != nil && len(c.Refused) == 0:
		return "we accept what the kubelet refuses"
	}
	for _, field := range c.Refused {
		if !names(err, field) {
			return field + " is in our findings and not in the kubelet's"
		}
	}
	return ""
}

var notLetters = regexp.MustCompile("[^a-z]")

// isFirst is the text of errors after which the kubelet looks at nothing else.
var isFirst = regexp.MustCompile("strict decoding error|feature gate|would panic")

// names reports whether an error is about the field. Those of evictions and of reserved memory do not name it.
func names(err error, field string) bool {
	top, _, _ := strings.Cut(field, ".")
	if strings.HasPrefix(top, "eviction") || strings.HasPrefix(top, "reservedMemory") || isFirst.MatchString(err.Error()) {
		return true
	}
	return strings.Contains(notLetters.ReplaceAllString(strings.ToLower(err.Error()), ""), strings.ToLower(top))
}

// kubeletStart is what the kubelet refuses after its validation, when it reads the values.
func kubeletStart(kc *config.KubeletConfiguration) error {
	_, err := eviction.ParseThresholdConfig(
		kc.EnforceNodeAllocatable, kc.EvictionHard, kc.EvictionSoft, kc.EvictionSoftGracePeriod, kc.EvictionMinimumReclaim)
	return errors.Join(err, kubeletQuantities(kc), kubeletPeriods(kc), kubeletQOS(kc))
}

// kubeletQuantities is parseResourceList of cmd/kubelet/app and parseMaxSize of pkg/kubelet/logs.
func kubeletQuantities(kc *config.KubeletConfiguration) error {
	var errs []error
	for field, reserved := range map[string]map[string]string{
		"systemReserved": kc.SystemReserved, "kubeReserved": kc.KubeReserved,
	} {
		for _, name := range slices.Sorted(maps.Keys(reserved)) {
			q, err := resource.ParseQuantity(reserved[name])
			if err != nil || q.Sign() < 0 || !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, name) {
				errs = append(errs, fmt.Errorf("%s.%s is refused: %q", field, name, reserved[name]))
			}
		}
	}
	q, err := resource.ParseQuantity(kc.ContainerLogMaxSize)
	if _, ok := q.AsInt64(); err != nil || !ok {
		errs = append(errs, fmt.Errorf("containerLogMaxSize is refused: %q", kc.ContainerLogMaxSize))
	}
	return errors.Join(errs...)
}

// kubeletPeriods is the start of NewMainKubelet of pkg/kubelet, its watch of files and klog's daemon, which make
// tickers, its connection to containerd, and NewContainerLogManager of pkg/kubelet/logs.
func kubeletPeriods(kc *config.KubeletConfiguration) error {
	var errs []error
	for field, isWrong := range map[string]bool{
		"syncFrequency": kc.SyncFrequency.Duration <= 0, "fileCheckFrequency": kc.FileCheckFrequency.Duration <= 0,
		"logging.flushFrequency": kc.Logging.FlushFrequency.Duration.Duration <= 0,
		"runtimeRequestTimeout":  kc.RuntimeRequestTimeout.Duration <= 0,
		"containerLogMaxFiles":   kc.ContainerLogMaxFiles <= 1,
		"configMapAndSecretChangeDetectionStrategy": !slices.Contains(
			[]config.ResourceChangeDetectionStrategy{"Get", "Cache", "Watch"},
			kc.ConfigMapAndSecretChangeDetectionStrategy,
		),
	} {
		if isWrong {
			errs = append(errs, fmt.Errorf("%s is refused", field))
		}
	}
	return errors.Join(errs...)
}

// kubeletQOS is ParseQOSReserved of pkg/kubelet/cm.
func kubeletQOS(kc *config.KubeletConfiguration) error {
	for name, value := range kc.QOSReserved {
		n, err := strconv.ParseInt(strings.TrimRight(value, "%"), 10, 0)
		if name != "memory" || !strings.HasSuffix(value, "%") || err != nil || n < 0 || n > 100 {
			return fmt.Errorf("qosReserved.%s is refused: %q", name, value)
		}
	}
	return nil
}
