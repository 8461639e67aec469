package render

import (
	"crypto/tls"
	"slices"
	"strconv"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/payload"
)

// exporterCollectors are the collectors that the cluster's recording rules need.
const exporterCollectors = "cpu,logical_disk,net,os,service,system,container,memory,cpu_info"

type exporterView struct {
	Certificate, Key, MinVersion string
	Ciphers                      []string
}

func (e *emitter) exporterEntries() {
	e.addFile(rowExporterCert, func(c Cluster) ([]byte, error) { return normalizePEM(c.Exporter.Certificate), nil })
	e.addFile(rowExporterKey, func(c Cluster) ([]byte, error) { return endLine(c.Exporter.Key.Reveal()), nil })
	e.addFile(rowExporterConf, e.fromTemplate("windows-exporter-webconfig.yaml", func(c Cluster) any {
		return exporterView{
			Certificate: fileExporterCert, Key: fileExporterKey, MinVersion: c.TLS.exporterVersion(),
			Ciphers: c.TLS.exporterCiphers(),
		}
	}))
	exe := payload.Find(payload.Exporter).Path
	log := dirLogs + `\windows_exporter\windows_exporter.log`
	level := "info"
	if e.cluster.Settings.Debug {
		level = "debug"
	}
	flags := map[string]string{
		"collectors.enabled": exporterCollectors, "log.file": log, "log.level": level, "web.config.file": fileExporterConf,
	}
	if len(e.hosts.Table.Routed) > 0 {
		flags["collectors.enabled"] += ",textfile"
		flags["collector.textfile.directories"] = places.Metrics
		if r, ok := e.wantedRow(rowExporter); ok {
			e.causedBy(r, r.Name, e.routedCauses())
		}
	}
	e.addService(rowExporter, bundle.Service{
		Argv:     append([]string{exe}, flagList(flags)...),
		Reads:    []string{fileExporterConf, exe},
		Recovery: restartAlways(),
		Probe:    bundle.Probe{Kind: bundle.ProbeTCP, Target: "127.0.0.1:" + strconv.Itoa(portExporter), DeadlineSeconds: 60},
		Logs:     e.cluster.Settings.Logs.rotationOf(log, bundle.RotationAgent),
	})
}

func endLine(text string) []byte {
	if text == "" {
		return nil
	}
	if text[len(text)-1] != '\n' {
		text += "\n"
	}
	return []byte(text)
}

// exporterVersion returns the profile's minimum version as exporter-toolkit writes it; TLS 1.2 without a profile.
func (t TLSProfile) exporterVersion() string {
	switch t.MinVersion {
	case "VersionTLS10":
		return "TLS10"
	case "VersionTLS11":
		return "TLS11"
	case "VersionTLS13":
		return "TLS13"
	}
	return "TLS12"
}

// exporterCiphers returns the profile's suites that exporter-toolkit accepts: Go's secure suites for TLS 1.2 and below.
// Any other name stops windows_exporter. Go's server refuses a list without a suite that HTTP/2 requires (RFC 7540,
// section 9.2.2), so such a list is left out and Go's defaults apply.
func (t TLSProfile) exporterCiphers() []string {
	if t.exporterVersion() == "TLS13" {
		return nil
	}
	var names []string
	http2 := false
	for _, suite := range tls.CipherSuites() {
		if !slices.Contains(t.Ciphers, suite.Name) {
			continue
		}
		names = append(names, suite.Name)
		if suite.ID == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 || suite.ID == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 {
			http2 = true
		}
	}
	if !http2 {
		return nil
	}
	slices.Sort(names)
	return names
}

func (e *emitter) csiProxyEntries() {
	exe := payload.Find(payload.CSIProxy).Path
	log := dirLogs + `\csi-proxy\csi-proxy.log`
	flags := map[string]string{
		"log_file":    log,
		"logtostderr": "false",
		"v":           e.cluster.Settings.logVerbosity(),
		// klog counts in MB; 0 is unlimited.
		"log_file_max_size": strconv.FormatInt(e.cluster.Settings.Logs.sizeMegabytes(), 10),
		"windows-service":   "true",
	}
	e.addService(rowCSIProxy, bundle.Service{
		Argv:     append([]string{exe}, flagList(flags)...),
		Reads:    []string{exe},
		Recovery: restartAlways(),
		Probe:    bundle.Probe{Kind: bundle.ProbePipe, Target: `\\.\pipe\csi-proxy-filesystem-v1`, DeadlineSeconds: 60},
		Logs:     e.cluster.Settings.Logs.rotationOf(log, bundle.RotationTruncate),
	})
}

func (e *emitter) cloudEntries() {
	if _, ok := e.wantedRow(rowCloudManager); !ok {
		return
	}
	exe := payload.Find(payload.CloudManager).Path
	log := dirLogs + `\cloud-node-manager\cloud-node-manager.log`
	logs := e.cluster.Settings.Logs
	flags := map[string]string{
		"kubeconfig":      fileCloudKubeconfig,
		"node-name":       e.node.KubernetesName(e.cluster.Platform),
		"v":               e.cluster.Settings.logVerbosity(),
		"wait-routes":     "false",
		"windows-service": "true",
	}
	e.addService(rowCloudManager, bundle.Service{
		Argv:         logs.logRunner(log, append([]string{exe}, flagList(flags)...)),
		Dependencies: []string{svcKubelet},
		Reads:        []string{fileCloudKubeconfig, payload.Find(payload.KubeLogRunner).Path, exe},
		Recovery:     restartAlways(),
		// Until the node agent has its certificate it ends at once, and is restarted.
		Probe: bundle.Probe{Kind: bundle.ProbeRunning, DeadlineSeconds: 300},
		Logs:  logs.rotationOf(log, bundle.RotationWrapper),
	})
}

// agentEntries adds the agent's service. must-gather reads its logs by these names.
func (e *emitter) agentEntries() {
	exe, known := e.agentPath()
	reads := []string{fileAgentKubeconfig}
	if known {
		reads = append(reads, exe)
	}
	logs := e.cluster.Settings.Logs
	var bounds []bundle.Log
	for _, level := range []string{"ERROR", "INFO", "WARNING"} {
		bounds = append(bounds, logs.rotationOf(dirAgentLogs+`\`+svcAgent+`.exe.`+level, bundle.RotationAgent)...)
	}
	flags := map[string]string{"kubeconfig": fileAgentKubeconfig, "log-dir": dirAgentLogs, "service": "true"}
	if e.cluster.Platform == bundle.PlatformAzure {
		flags["cloud-certificate"] = cloudClientCert
	}
	if e.cluster.Settings.Drift == DriftReport {
		flags["report-only"] = "true"
	}
	e.addService(rowAgent, bundle.Service{
		Argv:     append([]string{exe, "run"}, flagList(flags)...),
		Reads:    reads,
		Recovery: restartAlways(),
		Probe:    bundle.Probe{Kind: bundle.ProbeRunning, DeadlineSeconds: 60},
		Logs:     bounds,
	})
}
