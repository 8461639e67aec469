package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// Environment variables and arguments of the operator that users of the existing operator know; they win over the
// ConfigMap.
const (
	EnvLogSize  = "SERVICES_LOG_FILE_SIZE"
	EnvLogAge   = "SERVICES_LOG_FILE_AGE"
	EnvLogFlush = "SERVICES_LOG_FLUSH_INTERVAL"
	EnvArgs     = "ARGS"
	argDebug    = "--debugLogging"
)

// logVariable is an environment variable that sets one field of LogSettings.
type logVariable struct {
	name  string
	field *string
	// nearest returns the value that the field gets: the value itself, or the nearest one that the field can have.
	nearest func(value string) (string, error)
	// limits are those of the field.
	limits string
}

func (l *LogSettings) environmentVariables() []logVariable {
	return []logVariable{
		{
			EnvLogSize, &l.Size, nearestSize,
			"a log is rotated at a whole number of bytes from " + minLogSizeText + " to " + maxLogSizeText,
		},
		{EnvLogAge, &l.Age, nearestAge, "a rotated log is kept for whole seconds, up to " + maxLogAgeText},
		{EnvLogFlush, &l.FlushInterval, nearestFlush, "logs are written out at least every " + maxLogFlushText},
	}
}

// OperatorEnvironment applies the operator's environment variables over the settings. Every value that the existing
// operator accepts is accepted: one that the field cannot have becomes the nearest one that it can, with a finding of
// severity info.
func (s Settings) OperatorEnvironment(env map[string]string, ref bundle.Ref) (Settings, bundle.Findings) {
	var findings bundle.Findings
	for _, v := range s.Logs.environmentVariables() {
		value := strings.TrimSpace(env[v.name])
		if value == "" {
			continue
		}
		f := bundle.Finding{Object: ref, Field: "env." + v.name}
		nearest, err := v.nearest(value)
		switch {
		case err != nil:
			f.Severity, f.Reason, f.Message = bundle.SeverityError, reason.SettingsInvalid, err.Error()
			f.Fix = "correct the variable in the Subscription's spec.config.env, or set the field of " + SettingsConfigMap
			findings = append(findings, f)
			continue
		case nearest != value:
			f.Severity, f.Reason, f.Message = bundle.SeverityInfo, reason.SettingAdjusted, fmt.Sprintf("%q becomes %s: %s", value, nearest, v.limits)
			f.Fix = "none, or set a value within the limits in the Subscription's spec.config.env"
			findings = append(findings, f)
		}
		*v.field = nearest
	}
	s.Debug = s.Debug || slices.Contains(strings.Fields(env[EnvArgs]), argDebug)
	return s, findings
}

func nearestSize(value string) (string, error) {
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Sign() < 0 {
		return "", fmt.Errorf("%q is not a quantity of bytes such as 100Mi", value)
	}
	bytes := q.Value() // rounded up
	switch {
	case q.IsZero():
	case q.CmpInt64(minLogSize) < 0:
		return minLogSizeText, nil
	case q.CmpInt64(maxLogSize) > 0:
		return maxLogSizeText, nil
	case q.CmpInt64(bytes) != 0:
		return strconv.FormatInt(bytes, 10), nil
	}
	return value, nil
}

// nearestAge accepts days as well, as the ConfigMap does.
func nearestAge(value string) (string, error) {
	if days.MatchString(value) {
		return value, nil
	}
	d, err := time.ParseDuration(value)
	switch {
	case err != nil || d < 0:
		return "", fmt.Errorf("%q is not an age in days or hours such as 30d or 720h", value)
	case d > maxLogAge:
		return maxLogAgeText, nil
	case d%time.Second != 0:
		return (d.Truncate(time.Second) + time.Second).String(), nil
	}
	return value, nil
}

func nearestFlush(value string) (string, error) {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil || d < 0:
		return "", fmt.Errorf("%q is not a duration such as 5s", value)
	case d > maxLogFlush:
		return maxLogFlushText, nil
	}
	return value, nil
}
