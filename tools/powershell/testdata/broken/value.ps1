$ports = @{
    ssh =
}
