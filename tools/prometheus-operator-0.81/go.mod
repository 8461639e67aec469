// Definitions of ServiceMonitor and PrometheusRule, for tests.
module wmco/tools/prometheus-operator-0.81

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.81.0
