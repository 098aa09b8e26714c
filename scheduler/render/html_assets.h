/// The files of render/page/, as cmake/EmbedFiles.cmake built them into the library.
#pragma once

#include <string_view>

namespace stagecraft::render {

/// The document, with {{title}}, {{style}}, {{data}} and {{script}} where those belong, in this
/// order.
extern const std::string_view kPage;
extern const std::string_view kStyle;
extern const std::string_view kScript;

}  // namespace stagecraft::render
