{{- define "sluice.labels" -}}
app.kubernetes.io/name: sluice
{{- end }}

{{- define "sluice.image" -}}
{{- $flavour := ternary "-iptables" "" (eq .Values.config.mode "iptables") -}}
{{- $tag := print (.Values.image.tag | default .Chart.AppVersion | toString | trimSuffix $flavour) $flavour -}}
{{- .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ $tag }}{{ end }}
{{- end }}

{{- /* The configuration file. Where /proc/sys is read-only, it asks for nothing there unless the values do. */ -}}
{{- define "sluice.config" -}}
{{- $file := dict "apiVersion" "kubeproxy.config.k8s.io/v1alpha1" "kind" "KubeProxyConfiguration" -}}
{{- if not .Values.privileged -}}
{{- $_ := set $file "conntrack" (dict "maxPerCore" 0 "min" 0 "tcpEstablishedTimeout" "0s" "tcpCloseWaitTimeout" "0s") -}}
{{- end -}}
{{- mergeOverwrite $file (deepCopy .Values.config) | toYaml -}}
{{- end }}
