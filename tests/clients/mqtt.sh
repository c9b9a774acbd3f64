mosquitto_sub -h 127.0.0.1 -p 1883 -q 1 -c -i windrow-bridge -t 'farm/orders' |
    curl -sS -T - -X POST http://127.0.0.1:8420/v1/tables/orders/rows?results=errors -H 'Content-Type: application/x-ndjson'
