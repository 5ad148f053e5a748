{{- define "latchkey.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "latchkey.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Edges are not pods of the service. */}}
{{- define "latchkey.edgeSelector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}-edge
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "latchkey.labels" -}}
{{ include "latchkey.selector" . }}
{{ include "latchkey.releaseLabels" . }}
{{- end -}}

{{- define "latchkey.edgeLabels" -}}
{{ include "latchkey.edgeSelector" . }}
{{ include "latchkey.releaseLabels" . }}
{{- end -}}

{{- define "latchkey.releaseLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "latchkey.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{/* "true" if this release has the service, and not only edges. */}}
{{- define "latchkey.hasService" -}}
{{- if ne .Values.database "none" -}}true{{- end -}}
{{- end -}}

{{- define "latchkey.url" -}}
http://{{ include "latchkey.name" . }}:{{ .Values.service.port }}
{{- end -}}

{{- define "latchkey.edgeUrl" -}}
http://{{ include "latchkey.name" . }}-edge:{{ .Values.edge.service.port }}
{{- end -}}

{{/* "true" if there can be several pods. */}}
{{- define "latchkey.isScaled" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}true{{- end -}}
{{- end -}}

{{- define "latchkey.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "latchkey.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Values that contradict each other. */}}
{{- define "latchkey.check" -}}
{{- $scaled := include "latchkey.isScaled" . -}}
{{- if and (eq .Values.database "embedded") $scaled -}}
{{- fail "The embedded database belongs to one pod: set database to postgres, or replicas to 1 and autoscaling.enabled to false." -}}
{{- end -}}
{{- if and (ne .Values.database "postgres") .Values.secrets.databaseUrl.name -}}
{{- fail "secrets.databaseUrl is for PostgreSQL: set database to postgres." -}}
{{- end -}}
{{- if and (eq .Values.database "postgres") (not .Values.secrets.databaseUrl.name) -}}
{{- fail "database is postgres: set secrets.databaseUrl to the name and the key of a Secret with the address of PostgreSQL." -}}
{{- end -}}
{{- if and (eq .Values.database "none") (or (not .Values.edge.enabled) (not .Values.edge.upstream)) -}}
{{- fail "database is none: set edge.enabled to true, and edge.upstream to the address of the service." -}}
{{- end -}}
{{- if and (ne .Values.database "none") .Values.edge.upstream -}}
{{- fail "edge.upstream is for edges of a service elsewhere: set database to none, or leave it out." -}}
{{- end -}}
{{- if and .Values.edge.enabled (not .Values.edge.rootKey.name) -}}
{{- fail "An edge has a root key of its own: set edge.rootKey to the name and the key of a Secret with it." -}}
{{- end -}}
{{- if and (include "latchkey.hasService" .) $scaled (not .Values.secrets.redisUrl.name) -}}
{{- fail "Several pods count limits together in Redis: set secrets.redisUrl, or replicas to 1 and autoscaling.enabled to false." -}}
{{- end -}}
{{- end -}}
