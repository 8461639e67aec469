<powershell>
</powershell>
