module wmco/internal/verify/minors

go 1.26.0
