{{/* The template of the pods. */}}
{{- define "latchkey.pod" -}}
{{- $settings := dict "rootKey" "ROOT_KEY" "databaseUrl" "DATABASE_URL" "vaultKey" "VAULT_KEY" "redisUrl" "REDIS_URL" "clickhouseUrl" "CLICKHOUSE_URL" -}}
{{- $secrets := dict -}}
{{- range $value, $setting := $settings -}}
{{- with index $.Values.secrets $value -}}
{{- if .name -}}{{- $_ := set $secrets $setting . -}}{{- end -}}
{{- end -}}
{{- end -}}
metadata:
  labels:
    {{- include "latchkey.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "latchkey.podSettings" . | nindent 2 }}
  containers:
    - name: latchkey
      image: {{ include "latchkey.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      env:
        - { name: LATCHKEY_HOST, value: 0.0.0.0 }
        - { name: LATCHKEY_PORT, value: "3000" }
        # Apart from the API, so that its callers cannot read them.
        - { name: LATCHKEY_METRICS, value: "0.0.0.0:9464" }
        {{- if .Values.grpc.enabled }}
        - { name: LATCHKEY_GRPC_PORT, value: "50051" }
        {{- end }}
        - { name: LATCHKEY_DATA_DIR, value: /data }
        - { name: LATCHKEY_DRAIN, value: {{ printf "%ds" (int .Values.drainSeconds) }} }
        {{- range $setting, $_ := $secrets }}
        - { name: LATCHKEY_{{ $setting }}_FILE, value: /run/secrets/latchkey/{{ $setting }} }
        {{- end }}
        {{- range $setting, $value := .Values.settings }}
        - { name: LATCHKEY_{{ $setting }}, value: {{ toString $value | quote }} }
        {{- end }}
      ports:
        - { name: http, containerPort: 3000 }
        - { name: metrics, containerPort: 9464 }
        {{- if .Values.grpc.enabled }}
        - { name: grpc, containerPort: 50051 }
        {{- end }}
      {{- include "latchkey.probes" . | nindent 6 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "latchkey.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - { name: data, mountPath: /data }
        {{- if $secrets }}
        - { name: secrets, mountPath: /run/secrets/latchkey, readOnly: true }
        {{- end }}
  {{- if or $secrets (eq .Values.database "postgres") }}
  volumes:
    {{- if $secrets }}
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          {{- range $setting, $secret := $secrets }}
          - secret:
              name: {{ $secret.name | quote }}
              items: [{ key: {{ $secret.key | quote }}, path: {{ $setting }} }]
          {{- end }}
    {{- end }}
    {{- if eq .Values.database "postgres" }}
    - name: data
      emptyDir: { sizeLimit: {{ .Values.persistence.size | quote }} }
    {{- end }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* What pods of the service and of edges have alike. */}}
{{- define "latchkey.podSettings" -}}
# Variables for a Service named latchkey would look like settings, and an unknown setting stops the start.
enableServiceLinks: false
automountServiceAccountToken: false
# After the drain, a stop takes at most 10 seconds.
terminationGracePeriodSeconds: {{ add .Values.drainSeconds 15 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "latchkey.podSecurity" . | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "latchkey.probes" -}}
# A start waits for its database, or an edge for the service, up to five minutes.
startupProbe:
  httpGet: { path: /health/live, port: http }
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: { path: /health/live, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /health/ready, port: http }
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- end -}}
