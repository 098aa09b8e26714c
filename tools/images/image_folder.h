/// image_folder lists the contents of a folder of images by name: its images with their classes,
/// and its captions.
///
///     DIR/cat/1.png          class "cat"; the first folder counts, further ones may follow
///     DIR/dog/brown/7.jpg    class "dog"
///     DIR/9.png              class ""
///     DIR/captions.txt       cat/1.png<TAB>a cat on a chair
///
/// It decodes nothing. It sorts by the bytes of the names, so that every file system gives the same
/// order.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::tools {

struct ImageFile {
  std::string path;  ///< within the folder
  std::string label;
};

struct Caption {
  std::string path;  ///< of its image, within the folder
  std::string text;
};

/// Returns every file except hidden ones and captions.txt; does not follow links to folders.
/// Errors: UsageFile for a folder that cannot be read, or has no image.
[[nodiscard]] std::vector<ImageFile> images_in(const std::string& folder);

/// Returns the lines of captions.txt that are not empty; an image may have several.
/// Errors: UsageFile, with the line, if it is not a path, a tab and a caption, or if its path
///         leaves the folder or leads to no file.
[[nodiscard]] std::vector<Caption> captions_in(const std::string& folder);

}  // namespace stagecraft::tools
