#include "stagecraft/base/advice.h"

#include <string>
#include <utility>

namespace stagecraft {

Error with_advice(const Error& error, std::string_view advice) {
  std::string text = error.message();
  if (const std::size_t at = text.find(kToGoOn); at != std::string::npos) {
    text.resize(at);
    if (!advice.empty()) {
      text.append(kToGoOn).append(advice);
    }
  }
  Error told(error.code(), std::move(text));
  told.with(error.context());
  if (error.cause() != nullptr) {
    told.because(with_advice(*error.cause(), advice));
  }
  return told;
}

}  // namespace stagecraft
