#include "stagecraft/actors/security/authority.h"

#include <openssl/obj_mac.h>

#include "stagecraft/actors/security/certificate_parts.h"
#include "stagecraft/actors/security/credential_paths.h"

namespace stagecraft::security {
namespace {

Certificate unsigned_member(const PrivateKey& key, const CertificateTerms& terms) {
  return unsigned_certificate(key, terms.cluster, terms.name, terms.valid_from, terms.valid_until);
}

void add_role(const Certificate& certificate,
              const Certificate& issuer,
              Role role,
              const CertificateTerms& terms) {
  add_extension(certificate,
                issuer,
                NID_subject_alt_name,
                "URI:" + role_uri(role, terms.cluster, terms.name));
}

}  // namespace

Authority new_authority(const CertificateTerms& terms) {
  PrivateKey key = new_key();
  Certificate made = unsigned_member(key, terms);
  set_issuer(made, made);
  add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(made, made, NID_key_usage, "critical,keyCertSign");
  add_extension(made, made, NID_subject_key_identifier, "hash");
  add_role(made, made, Role::Authority, terms);
  sign(made, key);
  return {std::move(made), std::move(key)};
}

Certificate issue(const Authority& authority,
                  const PrivateKey& key,
                  const CertificateTerms& terms) {
  const Certificate& issuer = authority.certificate;
  Certificate made = unsigned_member(key, terms);
  set_issuer(made, issuer);
  const Role role = terms.name == kDriverMember ? Role::Driver : Role::Worker;
  add_extension(made, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made, issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(
      made, issuer, NID_ext_key_usage, role == Role::Driver ? "serverAuth" : "clientAuth");
  add_extension(made, issuer, NID_subject_key_identifier, "hash");
  add_extension(made, issuer, NID_authority_key_identifier, "keyid:always");
  add_role(made, issuer, role, terms);
  sign(made, authority.key);
  return made;
}

}  // namespace stagecraft::security
