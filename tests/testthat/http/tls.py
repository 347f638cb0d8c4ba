# Accepts TLS connections, and passes their content to a server of plain HTTP.
#
#   python3 tls.py CERTIFICATE KEY PORT ADDRESS PID
#
# PORT is the port of the server. Writes its own port to the file ADDRESS, and ends when this file is removed, or with
# the process PID.

import os
import socket
import ssl
import sys
import threading

certificate, key, port, address, parent = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(connection):
    try:
        client = context.wrap_socket(connection, server_side=True)
        server = socket.create_connection(("127.0.0.1", int(port)))
    except OSError:
        connection.close()
        return
    threading.Thread(target=copy, args=(client, server), daemon=True).start()
    copy(server, client)



def parent_runs():
    try:
        os.kill(int(parent), 0)
        return True
    except OSError:
        return False


listener = socket.create_server(("127.0.0.1", 0))
listener.settimeout(1)
with open(address + ".new", "w") as file:
    file.write(f"{listener.getsockname()[1]}\n")
os.rename(address + ".new", address)
while os.path.exists(address) and parent_runs():
    try:
        connection, _ = listener.accept()
    except socket.timeout:
        continue
    connection.settimeout(30)
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
