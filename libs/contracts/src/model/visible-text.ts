/** Controls, marks of direction, and all else that has no width: it hides a name, or changes the text beside it. */
const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** A stranger's text for people to read: each UTF-16 unit that is not visible is `\uXXXX`, also valid within JSON. */
export function visibleText(text: string): string {
  return text.replace(invisible, escaped);
}

function escaped(found: string): string {
  let units = "";
  for (let at = 0; at < found.length; at++)
    units += `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`;
  return units;
}
