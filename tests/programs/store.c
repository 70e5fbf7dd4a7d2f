/* Reads the machine's certificate stores.
 *
 * store.exe STORE SHA1        prints the bytes of the certificate with this SHA-1
 * store.exe --chain FILE      prints crypt32's status of a certificate's chain (DER): 0 is valid */
#include <windows.h>
#include <wincrypt.h>
#include <stdio.h>
#include <string.h>

static int chain(const char *path)
{
    static BYTE der[65536];
    FILE *file = fopen(path, "rb");
    if (!file)
        return 2;
    size_t length = fread(der, 1, sizeof der, file);
    fclose(file);
    PCCERT_CONTEXT certificate =
        CertCreateCertificateContext(X509_ASN_ENCODING, der, (DWORD)length);
    if (!certificate)
        return 3;
    CERT_CHAIN_PARA parameters = { .cbSize = sizeof parameters };
    PCCERT_CHAIN_CONTEXT found;
    if (!CertGetCertificateChain(HCCE_LOCAL_MACHINE, certificate, NULL, NULL, &parameters, 0, NULL,
                                 &found))
        return 4;
    printf("%08lx\n", found->TrustStatus.dwErrorStatus);
    return 0;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 1;
    if (!strcmp(arguments[1], "--chain"))
        return chain(arguments[2]);
    BYTE sha1[20];
    for (int i = 0; i < 20; i++)
        if (sscanf(arguments[2] + 2 * i, "%2hhx", &sha1[i]) != 1)
            return 2;
    WCHAR name[64];
    MultiByteToWideChar(CP_UTF8, 0, arguments[1], -1, name, 64);
    HCERTSTORE store = CertOpenStore(CERT_STORE_PROV_SYSTEM_W, 0, 0,
                                     CERT_SYSTEM_STORE_LOCAL_MACHINE | CERT_STORE_READONLY_FLAG
                                         | CERT_STORE_OPEN_EXISTING_FLAG,
                                     name);
    if (!store)
        return 3;
    CRYPT_HASH_BLOB hash = { sizeof sha1, sha1 };
    PCCERT_CONTEXT found =
        CertFindCertificateInStore(store, X509_ASN_ENCODING, 0, CERT_FIND_SHA1_HASH, &hash, NULL);
    if (!found)
        return 4;
    for (DWORD i = 0; i < found->cbCertEncoded; i++)
        printf("%02x", found->pbCertEncoded[i]);
    printf("\n");
    return 0;
}
