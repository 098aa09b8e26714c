#include "stagecraft/actors/security/authority.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "stagecraft/actors/security/credential_paths.h"

namespace stagecraft::security {
namespace {

constexpr int kSerialBits = 128;

void set_serial(X509* certificate) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(BN_new(), &BN_free);
  require_openssl(
      number != nullptr &&
          BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
          BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr,
      "a serial number");
}

void set_validity(X509* certificate, const CertificateTerms& terms) {
  using std::chrono::system_clock;
  require_openssl(ASN1_TIME_set(X509_getm_notBefore(certificate),
                                system_clock::to_time_t(terms.valid_from)) != nullptr &&
                      ASN1_TIME_set(X509_getm_notAfter(certificate),
                                    system_clock::to_time_t(terms.valid_until)) != nullptr,
                  "the validity of a certificate");
}

void add_name(X509_NAME* name, int part, const std::string& text) {
  require_openssl(X509_NAME_add_entry_by_NID(name,
                                             part,
                                             MBSTRING_UTF8,
                                             reinterpret_cast<const unsigned char*>(text.data()),
                                             static_cast<int>(text.size()),
                                             -1,
                                             0) == 1,
                  "the name of a certificate");
}

void add_extension(X509* certificate, X509V3_CTX& context, int kind, const char* value) {
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value), &X509_EXTENSION_free);
  require_openssl(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1,
                  "an extension of a certificate");
}

/// Returns a certificate without its issuer's name, extensions and signature.
Certificate unsigned_certificate(const PrivateKey& key, const CertificateTerms& terms) {
  Certificate certificate(X509_new());
  require_openssl(certificate != nullptr &&
                      X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                      X509_set_pubkey(certificate.get(), key.get()) == 1,
                  "a certificate");
  set_serial(certificate.get());
  set_validity(certificate.get(), terms);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  add_name(subject, NID_organizationName, terms.cluster);
  add_name(subject, NID_commonName, terms.name);
  return certificate;
}

void add_role(X509* certificate, X509V3_CTX& context, Role role, const CertificateTerms& terms) {
  const std::string uri = "URI:" + role_uri(role, terms.cluster, terms.name);
  add_extension(certificate, context, NID_subject_alt_name, uri.c_str());
}

void sign(const Certificate& certificate, const PrivateKey& key) {
  require_openssl(X509_sign(certificate.get(), key.get(), EVP_sha256()) != 0,
                  "the signature of a certificate");
}

}  // namespace

PrivateKey new_key() {
  PrivateKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "prime256v1"));
  require_openssl(key != nullptr, "a private key");
  return key;
}

Authority new_authority(const CertificateTerms& terms) {
  PrivateKey key = new_key();
  Certificate certificate = unsigned_certificate(key, terms);
  X509* const x = certificate.get();
  require_openssl(X509_set_issuer_name(x, X509_get_subject_name(x)) == 1, "an issuer's name");
  X509V3_CTX context;
  X509V3_set_ctx(&context, x, x, nullptr, nullptr, 0);
  add_extension(x, context, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(x, context, NID_key_usage, "critical,keyCertSign");
  add_extension(x, context, NID_subject_key_identifier, "hash");
  add_role(x, context, Role::Authority, terms);
  sign(certificate, key);
  return {std::move(certificate), std::move(key)};
}

Certificate issue(const Authority& authority,
                  const PrivateKey& key,
                  const CertificateTerms& terms) {
  Certificate certificate = unsigned_certificate(key, terms);
  X509* const x = certificate.get();
  X509* const issuer = authority.certificate.get();
  require_openssl(X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1, "an issuer's name");
  const Role role = terms.name == kDriverMember ? Role::Driver : Role::Worker;
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, x, nullptr, nullptr, 0);
  add_extension(x, context, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(x, context, NID_key_usage, "critical,digitalSignature");
  add_extension(x, context, NID_ext_key_usage, role == Role::Driver ? "serverAuth" : "clientAuth");
  add_extension(x, context, NID_subject_key_identifier, "hash");
  add_extension(x, context, NID_authority_key_identifier, "keyid:always");
  add_role(x, context, role, terms);
  sign(certificate, authority.key);
  return certificate;
}

}  // namespace stagecraft::security
