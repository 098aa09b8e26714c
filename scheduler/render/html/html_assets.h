/// HtmlAssets holds the files of a page, which cmake/EmbedFiles.cmake builds into the library, and
/// joins them into one document.
///
/// Private to render/. Pure.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft::drawing {

struct HtmlAssets {
  /// The document (shell.html around the page's own), with the placeholders {{title}}, {{style}},
  /// {{data}} and {{script}} in this order.
  std::string_view page;
  std::string_view style;
  std::string_view script;

  /// Returns the document. Requires: `data` holds no '<' (H-1).
  [[nodiscard]] std::string document(std::string_view title, std::string_view data) const;
};

extern const HtmlAssets kSchedulePage;  ///< render/html/page/
extern const HtmlAssets kPlanPage;      ///< render/html/plan_page/
extern const HtmlAssets kDagPage;       ///< render/html/dag_page/
extern const HtmlAssets kRunPage;       ///< render/html/run_page/

}  // namespace stagecraft::drawing
