if ($true) {
    Get-Service
