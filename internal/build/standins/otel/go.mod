module github.com/containerd/log/otel

go 1.26.0

require github.com/containerd/log v0.1.0

require (
	github.com/sirupsen/logrus v1.9.3 // indirect
	golang.org/x/sys v0.7.0 // indirect
)
