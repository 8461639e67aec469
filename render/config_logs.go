package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"wmco/bundle"
)

// The limits of the settings of logs, and how settings write them. Below the smallest size a node would spend its time
// rotating. The largest size and age fit into the flags of every service.
const (
	minLogSize, minLogSizeText   = 1 << 20, "1Mi"
	maxLogSize, maxLogSizeText   = 1 << 50, "1Pi"
	maxLogAge, maxLogAgeText     = 99999 * 24 * time.Hour, "99999d"
	maxLogFlush, maxLogFlushText = time.Hour, "1h"
)

func (l LogSettings) checkValues() bundle.Findings {
	var findings bundle.Findings
	if _, err := l.sizeBytes(); err != nil {
		findings = append(findings, invalidSetting("logs.size", "%v", err))
	}
	if _, err := l.maxAge(); err != nil {
		findings = append(findings, invalidSetting("logs.age", "%v", err))
	}
	if d, err := time.ParseDuration(l.FlushInterval); err != nil || d < 0 || d > maxLogFlush {
		findings = append(findings, invalidSetting("logs.flushInterval", "%q is not a duration from 0s to 1h", l.FlushInterval))
	}
	if l.Files < 1 || l.Files > 1000 {
		findings = append(findings, invalidSetting("logs.files", "%d is not from 1 to 1000", l.Files))
	}
	return findings
}

// sizeBytes returns the size at which logs rotate; 0 is never.
func (l LogSettings) sizeBytes() (int64, error) {
	q, err := resource.ParseQuantity(strings.TrimSpace(l.Size))
	if err != nil {
		return 0, fmt.Errorf("%q is not a quantity of bytes such as 100Mi", l.Size)
	}
	bytes := q.Value() // rounded up
	if !q.IsZero() && (q.CmpInt64(minLogSize) < 0 || q.CmpInt64(maxLogSize) > 0 || q.CmpInt64(bytes) != 0) {
		return 0, fmt.Errorf("%q is not a whole number of bytes from %s to %s", l.Size, minLogSizeText, maxLogSizeText)
	}
	return bytes, nil
}

var days = regexp.MustCompile(`^([0-9]{1,5})d$`)

// maxAge returns how long a rotated log is kept; 0 is for ever.
func (l LogSettings) maxAge() (time.Duration, error) {
	text := strings.TrimSpace(l.Age)
	if text == "0" {
		return 0, nil
	}
	if m := days.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		return 0, fmt.Errorf("%q is not an age in days or hours such as 30d or 720h", l.Age)
	case d > maxLogAge || d%time.Second != 0:
		return 0, fmt.Errorf("%q is not an age of whole seconds up to %s", l.Age, maxLogAgeText)
	}
	return d, nil
}
