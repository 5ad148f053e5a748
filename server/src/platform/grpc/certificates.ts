import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { OperatorError } from "../../log/operator-error.ts";

/** The files of the certificates. */
export interface CertificateFiles {
  certificate: string;
  key: string;
  /** Certificates of the authorities that sign those of clients; undefined: clients need none. */
  clientAuthority: string | undefined;
}

interface Texts {
  cert: string;
  key: string;
  ca?: string;
}

/** The certificate of the listener, which is read again when its files change. */
export class Certificates {
  readonly #files: CertificateFiles;
  readonly #onFailure: (error: unknown) => void;
  #texts: Texts | undefined;

  /** @param onFailure gets the error when changed files cannot be used; the former certificate stays. */
  constructor(files: CertificateFiles, onFailure: (error: unknown) => void) {
    this.#files = files;
    this.#onFailure = onFailure;
  }

  /** Whether clients need a certificate. */
  get asksClient(): boolean {
    return this.#files.clientAuthority !== undefined;
  }

  /** @throws {OperatorError} if the files cannot be used. */
  read(): Texts {
    try {
      this.#texts = this.#readFiles();
      return this.#texts;
    } catch (error) {
      const { certificate, key, clientAuthority } = this.#files;
      const files = [certificate, key, ...(clientAuthority === undefined ? [] : [clientAuthority])].join(", ");
      throw new OperatorError(`The certificate for gRPC cannot be used (${files}): ${(error as Error).message}`);
    }
  }

  /** Undefined if the files have not changed since they were read, or cannot be used. */
  readChanged(): Texts | undefined {
    try {
      const texts = this.#readFiles();
      const former = this.#texts;
      if (texts.cert === former?.cert && texts.key === former.key && texts.ca === former.ca) return undefined;
      this.#texts = texts;
      return texts;
    } catch (error) {
      this.#onFailure(error);
      return undefined;
    }
  }

  /** Files that are replaced one after another may not belong together for a moment; a context is not made from them. */
  #readFiles(): Texts {
    const { certificate, key, clientAuthority } = this.#files;
    const texts: Texts = { cert: readFileSync(certificate, "utf8"), key: readFileSync(key, "utf8") };
    if (clientAuthority !== undefined) texts.ca = readFileSync(clientAuthority, "utf8");
    createSecureContext(texts);
    return texts;
  }
}
