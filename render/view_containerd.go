package render

import (
	"wmco/bundle"
	"wmco/payload"
)

type containerdView struct {
	ContainerdVersion      string
	Root, State            string
	Pipe, TTRPCPipe        string
	LogLevel               string
	MaxConcurrentDownloads int
	PauseImage             string
	Registries             string
	CNIBin, CNIConfig      string
}

func (e *emitter) containerdEntries() {
	e.addFile(rowContainerdConf, e.fromTemplate("containerd_conf.toml", func(c Cluster) any {
		return containerdView{
			ContainerdVersion: payload.ContainerdVersion,
			Root:              dirContainerdRoot, State: dirContainerdState,
			Pipe: containerdPipe, TTRPCPipe: containerdPipe + ".ttrpc",
			LogLevel:               c.containerdLogLevel(),
			MaxConcurrentDownloads: c.Settings.Containerd.MaxConcurrentDownloads,
			PauseImage:             c.Settings.PauseImage,
			Registries:             dirRegistries,
			CNIBin:                 dirCNI, CNIConfig: dirCNIConfig,
		}
	}))
	exe := payload.Find(payload.Containerd).Path
	log := dirLogs + `\containerd\containerd.log`
	e.addService(rowContainerd, bundle.Service{
		Argv: []string{
			exe, "--config", fileContainerdConf, "--log-file", log, "--log-level", e.cluster.containerdLogLevel(), "--run-service",
		},
		Reads:    []string{fileContainerdConf, exe},
		Recovery: restartAlways(),
		Probe:    bundle.Probe{Kind: bundle.ProbePipe, Target: containerdPipe, DeadlineSeconds: 60},
		Logs:     e.cluster.Settings.Logs.rotationOf(log, bundle.RotationAgent),
	})
	if r, ok := e.wantedRow(rowExclusion); ok {
		e.layer.Exclusions = append(e.layer.Exclusions, bundle.Exclusion{Process: r.Name, Impact: r.Impact})
	}
}

func (c Cluster) containerdLogLevel() string {
	if c.Settings.Debug && c.Settings.Containerd.LogLevel == DefaultSettings().Containerd.LogLevel {
		return "debug"
	}
	return c.Settings.Containerd.LogLevel
}
