package render

import (
	"strconv"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/layout"
	"wmco/payload"
)

// How the log of each service is limited, according to the sources of the shipped versions:
//
//	kubelet, kube-proxy, cloud-node-manager  kube-log-runner wraps them: rotates by size, deletes by age, never by number
//	hybrid-overlay-node                      its own flags (size in MB, number, age in days; the old files are gzipped)
//	csi-proxy                                its own flag: truncates the one file at the size; never exits if wrapped
//	windows_exporter, containerd             append to one file, and are services only as a child of services.exe, so they
//	                                         cannot be wrapped: the agent copies and truncates the file
//	windows-instance-config-daemon           the agent itself
//
// The agent also limits the number of files of kube-log-runner.
const (
	megabyte = 1 << 20
	gzipped  = ".gz"
)

// rotationOf returns the limits of one log, or nil if rotation is off.
func (l LogSettings) rotationOf(path string, kind bundle.RotationKind) []bundle.Log {
	size, err := l.sizeBytes()
	if err != nil || size == 0 {
		return nil
	}
	age, err := l.maxAge()
	if err != nil {
		return nil
	}
	if kind == bundle.RotationTruncate {
		return []bundle.Log{{Path: path, Rotation: kind, SizeBytes: size}}
	}
	stem := strings.TrimSuffix(bundle.Base(path), ".log")
	log := bundle.Log{
		Path: path, Rotation: kind, Pattern: stem + "-*.log", SizeBytes: size, Files: l.Files,
		AgeSeconds: int64(age / time.Second),
	}
	if kind == bundle.RotationFlags {
		log.Pattern += gzipped
	}
	return []bundle.Log{log}
}

// logRunner returns the command of a service wrapped by kube-log-runner.
func (l LogSettings) logRunner(log string, command []string) []string {
	argv := []string{payload.Find(payload.KubeLogRunner).Path, "-log-file=" + log}
	if size, err := l.sizeBytes(); err == nil && size > 0 {
		argv = append(argv, layout.FlagLogFileSize+"="+strconv.FormatInt(size, 10))
		if age, err := l.maxAge(); err == nil && age > 0 {
			argv = append(argv, layout.FlagLogFileAge+"="+age.String())
		}
	}
	if d, err := time.ParseDuration(l.FlushInterval); err == nil && d > 0 {
		argv = append(argv, layout.FlagFlushInterval+"="+d.String())
	}
	return append(argv, command...)
}

// sizeMegabytes returns the size rounded up to whole MB; 0 if rotation is off.
func (l LogSettings) sizeMegabytes() int64 {
	size, err := l.sizeBytes()
	if err != nil {
		return 0
	}
	return (size + megabyte - 1) / megabyte
}

// ageDays returns the age rounded up to whole days; 0 is for ever.
func (l LogSettings) ageDays() int64 {
	age, err := l.maxAge()
	if err != nil {
		return 0
	}
	return int64((age + 24*time.Hour - 1) / (24 * time.Hour))
}
