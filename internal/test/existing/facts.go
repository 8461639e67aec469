package existing

// Folders of the existing operator.
const (
	folder = `C:\k\`    // pkg/windows/windows.go, K8sDir
	temp   = `C:\Temp\` // pkg/windows/windows.go, remoteDir
	logs   = `C:\var\log\`
)

const (
	windowsFile  = "pkg/windows/windows.go"
	servicesFile = "pkg/services/services.go"
)

// existingFiles are those that this operator does not write, or writes with other contents, and what stands for their
// contents.
func existingFiles() []fact {
	return []fact{
		// wicdPath
		{Agent, "the existing agent", windowsFile, lines{71, 76, 76, 76, 77, 77, 77, 81, 81}},
		// wicdKubeconfigPath, later WICDKubeconfigPath
		{folder + `wicd-kubeconfig`, "of the existing agent", windowsFile, lines{138, 139, 143, 143, 144, 144, 144, 148, 152}},
		// WICDCurrentCertPath: before, the agent has the token of a ServiceAccount
		{folder + `wicd-certs\wicd-client-current.pem`, "a client certificate", windowsFile, lines{0, 0, 0, 0, 0, 148, 148, 152, 156}},
		// HNSPSModule
		{temp + `hns.psm1`, "a script", windowsFile, lines{33, 33, 33, 33, 34, 34, 34, 36, 36}},
		// NetworkConfScriptPath
		{temp + `network-conf.ps1`, "a script", windowsFile, lines{75, 80, 80, 80, 81, 81, 81, 85, 89}},
		// WinDefenderExclusionScriptRemotePath
		{temp + `windows-defender-exclusion.ps1`, "a script", windowsFile, lines{31, 31, 31, 31, 32, 32, 32, 34, 34}},
		// GcpGetHostnameScriptRemotePath
		{temp + `gcp-get-hostname.ps1`, "a script", windowsFile, lines{28, 28, 28, 28, 29, 29, 29, 31, 31}},
		// TLSConfPath: before, windows_exporter has no TLS
		{folder + `tls\windows-exporter-webconfig.yaml`, "of the existing operator", windowsFile, lines{0, 59, 59, 59, 60, 60, 60, 64, 64}},
	}
}

const (
	agentService = "windows-instance-config-daemon"
	namespace    = "openshift-windows-machine-config-operator"
	agentBegin   = Agent + ` controller --windows-service --log-dir ` + logs + `wicd`
	exporter     = folder + `windows_exporter.exe --collectors.enabled `
	exporterTLS  = ` --web.config.file ` + folder + `tls\windows-exporter-webconfig.yaml`
	proxyBegin   = folder + `kube-log-runner.exe -log-file=` + logs + `kube-proxy\kube-proxy.log ` + folder + `kube-proxy.exe`
)

// existingServices are those whose commands are not those of this operator, without debug logging and without limits of
// logs. The command of the kubelet is: what its stand-in reads there is the same.
func existingServices() []fact {
	return []fact{
		// ConfigureWICD
		{agentService, agentBegin + ` --kubeconfig ` + folder + `wicd-kubeconfig --namespace ` + namespace + ` --ca-bundle ` + folder + `ca-bundle.crt`, windowsFile, lines{560, 561, 565, 570, 603, 0, 0, 0, 0}},
		{
			agentService, agentBegin + ` --namespace ` + namespace + ` --kubeconfig ` + folder + `wicd-kubeconfig --cert-dir ` + folder + `wicd-certs --cert-duration 1h --ca-bundle ` + folder + `ca-bundle.crt`,
			windowsFile, lines{0, 0, 0, 0, 0, 619, 619, 628, 633},
		},
		// WindowsExporterServiceCommand
		{"windows_exporter", exporter + `cpu,cs,logical_disk,net,os,service,system,textfile,container,memory,cpu_info`, windowsFile, lines{121, 0, 0, 0, 0, 0, 0, 0, 0}},
		// GenerateManifest
		{"windows_exporter", exporter + `cpu,cs,logical_disk,net,os,service,system,textfile,container,memory,cpu_info` + exporterTLS, servicesFile, lines{0, 31, 31, 31, 0, 0, 0, 0, 0}},
		{"windows_exporter", exporter + `cpu,cs,logical_disk,net,os,service,system,container,memory,cpu_info` + exporterTLS, servicesFile, lines{0, 0, 0, 0, 31, 31, 0, 0, 0}},
		{"windows_exporter", exporter + `cpu,logical_disk,net,os,service,system,container,memory,cpu_info` + exporterTLS, servicesFile, lines{0, 0, 0, 0, 0, 0, 41, 35, 0}},
		{
			"windows_exporter", exporter + `cpu,logical_disk,net,os,service,system,container,memory,cpu_info` + exporterTLS + ` --log.level info --log.file ` + logs + `windows_exporter\windows_exporter.log`,
			servicesFile, lines{0, 0, 0, 0, 0, 0, 0, 0, 39},
		},
		// csiProxyConfiguration
		{"csi-proxy", folder + `csi-proxy.exe -log_file=` + logs + `csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=2`, servicesFile, lines{168, 171, 190, 190, 190, 190, 199, 193, 197}},
		// kubeProxyConfiguration
		{
			"kube-proxy", proxyBegin + ` --windows-service --proxy-mode=kernelspace --feature-gates=WinOverlay=true,WinDSR=true --hostname-override=NODE_NAME --kubeconfig=` + folder +
				`kubeconfig --cluster-cidr=NODE_SUBNET --network-name=OVNKubernetesHybridOverlayNetwork --source-vip=ENDPOINT_IP --enable-dsr=true --v=2`,
			servicesFile, lines{137, 140, 0, 0, 0, 0, 0, 0, 0},
		},
		{"kube-proxy", proxyBegin + ` --config ` + folder + `kube-proxy.conf --windows-service`, servicesFile, lines{0, 0, 146, 146, 146, 146, 156, 150, 154}},
	}
}

const domain = "windowsmachineconfig.openshift.io/"

// Username is the annotation with the encrypted name of the user of an instance.
const Username = domain + "username"

// existingAnnotations are those of the Node.
func existingAnnotations() []fact {
	return []fact{
		// VersionAnnotation, DesiredVersionAnnotation
		{domain + "version", "", "pkg/metadata/metadata.go", lines{21, 21, 21, 21, 21, 21, 21, 21, 21}},
		{domain + "desired-version", "", "pkg/metadata/metadata.go", lines{23, 23, 23, 23, 23, 23, 23, 23, 23}},
		// PubKeyHashAnnotation
		{domain + "pub-key-hash", "", "pkg/nodeconfig/nodeconfig.go", lines{59, 59, 59, 57, 58, 59, 60, 60, 60}},
		// UsernameAnnotation
		{Username, "", "controllers/configmap_controller.go", lines{72, 72, 73, 76, 77, 76, 79, 79, 79}},
		// addSSHHostKeyAnnotation: before, the key of a host is not pinned
		{domain + "ssh-host-key", "", "pkg/nodeconfig/nodeconfig.go", lines{0, 0, 0, 0, 830, 900, 907, 907, 907}},
		{domain + "ssh-host-key-type", "", "pkg/nodeconfig/nodeconfig.go", lines{0, 0, 0, 0, 831, 901, 908, 908, 908}},
	}
}
