#include "stagecraft/tools/doctor/talk/talk.h"

namespace stagecraft::tools {

std::string line_of(const char* kind, const char* word, Json content) {
  content[kind] = word;
  return content.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Json content_of(std::string_view line, const char* kind) {
  Json content = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  return content.is_object() && content.contains(kind) && content[kind].is_string() ? content
                                                                                    : Json(nullptr);
}

}  // namespace stagecraft::tools
