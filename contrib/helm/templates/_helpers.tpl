{{- define "windrow.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "windrow.selector" -}}
app.kubernetes.io/name: windrow
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "windrow.labels" -}}
{{ include "windrow.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}
