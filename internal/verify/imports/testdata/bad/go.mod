module wmco

go 1.26.0

require (
	golang.org/x/crypto v0.0.0
	k8s.io/client-go v0.0.0
)

replace (
	golang.org/x/crypto => ./fake/crypto
	k8s.io/client-go => ./fake/client-go
)
