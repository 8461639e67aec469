module wmco

go 1.26.0

require k8s.io/client-go v0.0.0

replace k8s.io/client-go => ./fake/client-go
