#include "stagecraft/compiler/libtorch/type_text.h"

namespace stagecraft {

std::string type_text(at::ScalarType type) {
  return type == at::ScalarType::Undefined ? "undefined" : c10::getDtypeNames(type).first;
}

}  // namespace stagecraft
