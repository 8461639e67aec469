module wmco/internal/build/kubelets

go 1.26.0
