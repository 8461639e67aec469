if (-not ($true) {
    Get-Service
}
