#include "stagecraft/actors/security/server_certificate.h"

#include <arpa/inet.h>
#include <openssl/obj_mac.h>

#include "stagecraft/actors/security/certificate_parts.h"

namespace stagecraft::security {
namespace {

bool is_in_digits(const std::string& host) {
  in6_addr any{};
  return inet_pton(AF_INET, host.c_str(), &any) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

}  // namespace

Certificate new_server_certificate(const PrivateKey& key,
                                   const std::string& host,
                                   TimePoint valid_from,
                                   TimePoint valid_until) {
  Certificate made =
      unsigned_certificate(key, "Stagecraft", "server of one run", valid_from, valid_until);
  set_issuer(made, made);
  add_extension(made, made, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made, made, NID_key_usage, "critical,digitalSignature");
  add_extension(made, made, NID_ext_key_usage, "serverAuth");
  add_extension(made, made, NID_subject_key_identifier, "hash");
  add_extension(made, made, NID_subject_alt_name, (is_in_digits(host) ? "IP:" : "DNS:") + host);
  sign(made, key);
  return made;
}

}  // namespace stagecraft::security
